"""Before training: can verified credit pay on this task, with this policy, and with which judge?"""

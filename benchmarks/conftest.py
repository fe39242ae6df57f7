"""Scripts beside the suites are run by hand; pytest has nothing to collect in them."""

collect_ignore_glob = ["*_speed.py", "judge_*.py"]

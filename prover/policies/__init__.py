"""Policies: engines that sample token ids."""

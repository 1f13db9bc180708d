"""Pods, found by label or by their job: by the package `kubernetes` in this process, or by `kubectl`."""

"""Jobs are rows with a lease: claim, heartbeat, fencing, the worker and its fit child."""

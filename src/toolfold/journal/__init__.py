"""What happened: every run, call and decision, written down and accounted for."""

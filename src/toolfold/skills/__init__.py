"""Skills: functions that worked, saved by name as folders that people can read and commit."""

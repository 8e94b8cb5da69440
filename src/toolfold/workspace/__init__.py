"""Files that outlive runs: one directory for each project, which guest code reads and writes."""

class Transaction:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("begin")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append("rollback" if kind else "commit")
        return kind is ValueError

log = []
with Transaction(log):
    log.append("work")
with Transaction(log):
    raise ValueError("bad row")
log

#: value
#| ["begin", "work", "commit", "begin", "rollback"]

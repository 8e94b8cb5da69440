from functools import cached_property

class Report:
    loads = 0

    @cached_property
    def rows(self):
        Report.loads += 1
        return [1, 2, 3]

report = Report()
(sum(report.rows), len(report.rows), Report.loads)

#: value
#| [6, 3, 1]

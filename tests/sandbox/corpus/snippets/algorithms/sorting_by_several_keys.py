people = [("Ada", 36, "London"), ("Bo", 28, "Taipei"), ("Cy", 36, "Berlin"), ("Di", 28, "Oslo")]
by_age_then_name_backwards = sorted(sorted(people, key=lambda p: p[0], reverse=True), key=lambda p: p[1])
[name for name, *_ in by_age_then_name_backwards]

#: value
#| ["Di", "Bo", "Cy", "Ada"]

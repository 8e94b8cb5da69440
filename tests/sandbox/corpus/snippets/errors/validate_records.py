records = [{"name": "Ada", "age": 36}, {"name": "", "age": 5}, {"name": "Bo"}, {"name": "Cy", "age": "x"}]

def problems(record):
    if not record.get("name"):
        yield "name is empty"
    try:
        if int(record["age"]) < 0:
            yield "age is negative"
    except KeyError:
        yield "age is missing"
    except ValueError:
        yield f"age is {record['age']!r}"

{i: list(problems(r)) for i, r in enumerate(records)}

#: value
#| {"0": [], "1": ["name is empty"], "2": ["age is missing"], "3": ["age is 'x'"]}

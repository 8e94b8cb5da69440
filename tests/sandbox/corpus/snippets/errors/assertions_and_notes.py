def check(total):
    assert total >= 0, f"total is {total}"
    return total

try:
    check(-5)
except AssertionError as error:
    error.add_note("while checking row 3")
    print(error, error.__notes__)

#: prints
#| total is -5 ['while checking row 3']

from string import Template

letter = Template("Dear $name, your $item ships on ${day}. Cost: $$${cost}")
print(letter.substitute(name="Ada", item="lamp", day="Monday", cost="39.90"))
letter.safe_substitute(name="Bo")

#: prints
#| Dear Ada, your lamp ships on Monday. Cost: $39.90
#: value
#| "Dear Bo, your $item ships on ${day}. Cost: $${cost}"

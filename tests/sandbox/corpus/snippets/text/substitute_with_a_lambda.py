import re

text = "user_name and order_id and created_at"
re.sub(r"_(\w)", lambda m: m.group(1).upper(), text)

#: value
#| "userName and orderId and createdAt"

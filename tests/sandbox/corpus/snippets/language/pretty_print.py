import pprint

document = {"name": "shop", "orders": [{"id": n, "lines": ["lamp", "desk", "chair"]} for n in (1, 2)], "open": True}
pprint.pprint(document, width=50, sort_dicts=False)

#: prints
#| {'name': 'shop',
#|  'orders': [{'id': 1,
#|              'lines': ['lamp', 'desk', 'chair']},
#|             {'id': 2,
#|              'lines': ['lamp', 'desk', 'chair']}],
#|  'open': True}

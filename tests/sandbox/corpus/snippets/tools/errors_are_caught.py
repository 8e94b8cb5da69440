import shop

results = []
for order_id in (103, 104, 999):
    try:
        results.append(shop.ship(order_id=order_id)["parcel"])
    except RuntimeError as error:
        results.append(f"failed: {error}")
print("\n".join(results))

#: prints
#| P721
#| failed: shop.ship failed: Order 104 is cancelled.
#| failed: shop.ship failed: There is no order 999.

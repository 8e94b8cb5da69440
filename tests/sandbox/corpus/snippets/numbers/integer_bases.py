value = 2026
print(bin(value), oct(value), hex(value), int("7ea", 16), value.bit_length(), value.bit_count())
(value.to_bytes(2, "big").hex(), int.from_bytes(b"\x07\xea", "big"))

#: prints
#| 0b11111101010 0o3752 0x7ea 2026 11 8
#: value
#| ["07ea", 2026]

text = "abcdefghij"
(text[::-2], text[-3:], text[2:-2:3], "-".join(text[:3]), text.find("z"), "x,y,,z".split(","), "  pad ".strip().zfill(6), "Title case".swapcase())

#: value
#| ["jhfdb", "hij", "cf", "a-b-c", -1, ["x", "y", "", "z"], "000pad", "tITLE CASE"]

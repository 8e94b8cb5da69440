from enum import Flag, auto

class Rights(Flag):
    READ = auto()
    WRITE = auto()
    ADMIN = READ | WRITE

mine = Rights.READ
mine |= Rights.WRITE
(mine == Rights.ADMIN, Rights.WRITE in mine, (mine & ~Rights.WRITE).name)

#: value
#| [true, true, "READ"]

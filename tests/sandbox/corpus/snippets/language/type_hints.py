from typing import Any, Optional, TypedDict, Union, cast

class Movie(TypedDict, total=False):
    title: str
    year: int

def year(movie: Movie) -> Optional[int]:
    return movie.get("year")

movies: list[Movie] = [{"title": "A", "year": 1999}, {"title": "B"}]
value: Union[int, str] = cast(Any, "x")
[year(m) for m in movies] + [value]

#: value
#| [1999, null, "x"]

import sqlite3

db = sqlite3.connect(":memory:")
db.executescript("""
    create table author (id integer primary key, name text);
    create table book (title text, author integer references author, year integer);
    insert into author values (1, 'Ada'), (2, 'Bo'), (3, 'Cy');
    insert into book values ('One', 1, 2001), ('Two', 1, 2010), ('Three', 2, 2005);
""")
rows = db.execute("""
    select name, count(title), coalesce(max(year), 0) from author
    left join book on book.author = author.id group by author.id order by 2 desc, 1
""").fetchall()
for row in rows:
    print(*row)

#: prints
#| Ada 2 2010
#| Bo 1 2005
#| Cy 0 0

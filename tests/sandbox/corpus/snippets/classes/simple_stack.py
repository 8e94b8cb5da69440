class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        return self

    def pop(self):
        if not self.items:
            raise IndexError("the stack is empty")
        return self.items.pop()

stack = Stack().push(1).push(2).push(3)
print(stack.pop(), stack.pop())
try:
    stack.pop()
    stack.pop()
except IndexError as error:
    print("error:", error)

#: prints
#| 3 2
#| error: the stack is empty

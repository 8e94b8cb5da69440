import sys

def main(argv):
    print("arguments:", len(argv))
    return 0

if __name__ == "__main__":
    status = main([])
    print("status", status)

#: prints
#| arguments: 0
#| status 0

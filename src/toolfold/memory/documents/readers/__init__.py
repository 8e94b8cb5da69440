"""From the bytes of a file to blocks of text. Only the process that reads files imports these."""

"""Files into notes: read, cut into chunks, kept in step with what the files say."""

"""What finds personal data in a text: one module for each family."""

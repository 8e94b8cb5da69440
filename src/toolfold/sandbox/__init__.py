"""Where guest code runs."""

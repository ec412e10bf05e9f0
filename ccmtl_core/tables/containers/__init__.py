"""What tables come packed in: compressed files, archives and workbooks; told apart by content."""

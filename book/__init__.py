"""The book: pages drawn from `source/`, reference pages drawn from the registries in `book/reference`."""

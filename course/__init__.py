"""The reference code of The Mathematics of Transformers, one module a chapter."""

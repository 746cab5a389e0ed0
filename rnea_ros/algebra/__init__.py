"""Vectors, small linear algebra, Taylor series and linear forms, for any scalar."""

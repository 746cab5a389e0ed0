"""Robots: any combination of base, loops, springs, motors and contacts."""

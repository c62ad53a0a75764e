"""What several clients do at once to the same items, recorded and judged: is there an order that explains it all?"""

"""The executable specification: DESIGN.md §3, §5, §6, §7, §9, §10 and §11 as plain Python over lists.

Written from the page and not from the product, so that the two can be compared (§16). Read it in the order of
the page: `model` (§2, §3), `writing` (§5, §12), `gates` (§7), `returning` (§6, §9, §10, §11), and last `play`
(§13). It must never import `tracegraph`, read a Cypher file or talk to a database.
"""

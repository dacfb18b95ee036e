"""demo/shop: the shop: services, customers, incidents.

background.py  starts, ends, timed work, gauges
browsing.py    looking around, searching, filling a cart
calls.py       calls between services: HTTP, gRPC, databases
catalogue.py   products, their search and their stock
checkout.py    checkout, payment, shipping
customers.py   which page somebody asks for
email.py       the queue, and the mails that come of it
exceptions.py  exceptions and their stacks
"""

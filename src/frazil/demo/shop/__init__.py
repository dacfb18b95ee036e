"""demo/shop: customers, pages, and the calls between services.

customers.py   customers and the pages they request
browsing.py    home, product, search and cart pages
checkout.py    checkout, payment, shipping
catalogue.py   products, search, stock
email.py       the order queue and its mails
calls.py       calls between services: HTTP, gRPC, databases
background.py  pod starts and stops, periodic jobs, gauges
exceptions.py  exceptions and their stack traces
"""

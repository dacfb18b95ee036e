"""rules/notify: who hears of alerts.

notification.py  Notification: an alert as it is sent
bodies.py        notifications as JSON: Alertmanager's API v2, and plain webhooks
post.py          one POST over HTTP
notifier.py      Notifier: the queue and the thread of one receiver
"""

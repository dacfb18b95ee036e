"""serve/dashboards: dashboards as files.

model.py  Dashboard: panels on a grid, as a file has them
store.py  DashboardFiles: the files
"""

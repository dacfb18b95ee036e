"""serve/dashboards: dashboards as files.

model.py  Dashboard: panels on a grid, as stored
store.py  DashboardFiles: reads and writes the files
"""

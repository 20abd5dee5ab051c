# Dumps and loads 12 000 rows as JSON and indexes them.
import json, random
random.seed(7)
data = [{"id": i, "name": "n%d" % i, "tags": ["t%d" % random.randrange(500) for _ in range(random.randrange(8))], "value": random.random()} for i in range(12000)]
text = json.dumps(data)
again = json.loads(text)
by = {}
for row in again:
    for tag in row["tags"]:
        by.setdefault(tag, []).append(row["id"])
print(len(text), len(by), sum(len(v) for v in by.values()))

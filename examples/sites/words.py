"""Text out of objects and back, words counted: what scripts do."""
import collections
import json
import re

words = collections.Counter()
for _ in range(60):
    data = [{"name": f"n{k}", "values": list(range(k % 17)), "text": f"some text {k}"} for k in range(2000)]
    for item in json.loads(json.dumps(data)):
        words.update(re.findall(r"\w+", item["text"]))
print(len(words))

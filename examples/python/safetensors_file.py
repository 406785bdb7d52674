"""Writes safetensors files: what a program in another language reads without Python. Needs nothing but the standard library."""
import json
import struct


def write(path, tensors, metadata=None):
    """tensors: {name: an array of fp32 that has shape and tobytes(), as those of numpy}; metadata: {name: text or number}."""
    header, end = {"__metadata__": {name: str(value) for name, value in (metadata or {}).items()}}, 0
    data = {name: tensor.tobytes() for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        begin, end = end, end + len(data[name])
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(data.values())

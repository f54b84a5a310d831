"""What both ends of the connection between tests and students use: frames, values, calls there and back.

It reads bytes that a student's process sent: nothing here evaluates, imports or unpickles what they say.
"""

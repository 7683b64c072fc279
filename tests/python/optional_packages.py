"""Whether a package that some tests need is installed."""


def have(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True

// Python with the extension module inside, for tests with sanitizers.
#include <Python.h>

extern "C" PyObject* PyInit__core();

int main(int count, char** words) {
  if (PyImport_AppendInittab("bubblescope._core", PyInit__core) != 0) return 1;
  return Py_BytesMain(count, words);
}

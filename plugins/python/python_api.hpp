// The functions of Python's Stable ABI that the plugin calls, found at run time: it is built without Python's headers
// and linked with none of its libraries.
#pragma once

#include <cstddef>

struct _object;  // NOLINT: Python's own name, which LibTorch's signatures contain
using PyObject = _object;
using PyGILState_STATE = int;
struct PyThreadState;

namespace headroom::python {

// F(result, name, parameters)
#define HEADROOM_PYTHON_FUNCTIONS(F)                                             \
  F(void, Py_InitializeEx, (int))                                                \
  F(PyThreadState*, PyEval_SaveThread, ())                                       \
  F(PyGILState_STATE, PyGILState_Ensure, ())                                     \
  F(void, PyGILState_Release, (PyGILState_STATE))                                \
  F(void, Py_IncRef, (PyObject*))                                                \
  F(void, Py_DecRef, (PyObject*))                                                \
  F(PyObject*, PyErr_Occurred, ())                                               \
  F(int, PyErr_ExceptionMatches, (PyObject*))                                    \
  F(void, PyErr_Fetch, (PyObject**, PyObject**, PyObject**))                     \
  F(void, PyErr_NormalizeException, (PyObject**, PyObject**, PyObject**))        \
  F(int, PyException_SetTraceback, (PyObject*, PyObject*))                       \
  F(PyObject*, PyImport_AddModule, (const char*))                                \
  F(PyObject*, PyModule_GetDict, (PyObject*))                                    \
  F(PyObject*, PyEval_GetBuiltins, ())                                           \
  F(int, PyDict_SetItemString, (PyObject*, const char*, PyObject*))              \
  F(PyObject*, Py_CompileString, (const char*, const char*, int))                \
  F(PyObject*, PyEval_EvalCode, (PyObject*, PyObject*, PyObject*))               \
  F(PyObject*, PyObject_GetAttrString, (PyObject*, const char*))                 \
  F(PyObject*, PyObject_CallObject, (PyObject*, PyObject*))                      \
  F(PyObject*, PyObject_Str, (PyObject*))                                        \
  F(PyObject*, PyTuple_New, (std::ptrdiff_t))                                    \
  F(std::ptrdiff_t, PyTuple_Size, (PyObject*))                                   \
  F(int, PyTuple_SetItem, (PyObject*, std::ptrdiff_t, PyObject*))                \
  F(PyObject*, PyTuple_GetItem, (PyObject*, std::ptrdiff_t))                     \
  F(PyObject*, PyUnicode_DecodeUTF8, (const char*, std::ptrdiff_t, const char*)) \
  F(const char*, PyUnicode_AsUTF8AndSize, (PyObject*, std::ptrdiff_t*))          \
  F(PyObject*, PyBool_FromLong, (long))                                          \
  F(PyObject*, PyLong_FromLongLong, (long long))                                 \
  F(PyObject*, PyLong_FromUnsignedLongLong, (unsigned long long))                \
  F(long long, PyLong_AsLongLong, (PyObject*))                                   \
  F(void*, PyLong_AsVoidPtr, (PyObject*))                                        \
  F(double, PyFloat_AsDouble, (PyObject*))

struct Api {
#define HEADROOM_PYTHON_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  HEADROOM_PYTHON_FUNCTIONS(HEADROOM_PYTHON_MEMBER)
#undef HEADROOM_PYTHON_MEMBER
  PyObject *none = nullptr, *memory_error = nullptr;
};

// Of the interpreter that runs (interpreter.hpp).
const Api& api();

}  // namespace headroom::python

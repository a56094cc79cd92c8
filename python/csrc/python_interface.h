// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of Python's stable ABI (docs.python.org/3/c-api/stable.html), which the process that loads us has. They are
// declared here, so that nothing of Python is needed to build, and one build serves all versions from 3.10 on.
//
#ifndef ATTNC_PYTHON_INTERFACE_H
#define ATTNC_PYTHON_INTERFACE_H

#include <cstddef>
#include <cstdint>

extern "C" {
struct PyObject;
struct PyThreadState;
using Py_ssize_t = intptr_t;
using PyCFunctionFast = PyObject *(*)(PyObject * self, PyObject *const *arguments, Py_ssize_t count);
struct PyMethodDef {
  const char *name;
  PyCFunctionFast function;
  int flags;
  const char *doc;
};
constexpr int METH_FASTCALL = 0x80;

extern PyObject *PyExc_RuntimeError;
void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);
PyThreadState *PyEval_SaveThread(void);
void PyEval_RestoreThread(PyThreadState *);
void PyErr_SetString(PyObject *type, const char *text);
PyObject *PyObject_CallFunctionObjArgs(PyObject *callable, ...); // arguments, then NULL
PyObject *PyCapsule_New(void *pointer, const char *name, void (*destructor)(PyObject *));
void *PyCapsule_GetPointer(PyObject *capsule, const char *name);
const char *PyUnicode_AsUTF8AndSize(PyObject *string, Py_ssize_t *size);
PyObject *PyList_New(Py_ssize_t size);
Py_ssize_t PyList_Size(PyObject *list);
PyObject *PyList_GetItem(PyObject *list, Py_ssize_t index); // borrowed
int PyList_SetItem(PyObject *list, Py_ssize_t index, PyObject *stolen);
PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *self, PyObject *module);
}

#endif // ATTNC_PYTHON_INTERFACE_H

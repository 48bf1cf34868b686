// The GIL released around a call. A thread that comes back while the interpreter is being finalised
// is not let in: Python up to 3.13 ends such a thread by unwinding its stack, which aborts the
// process where that meets C++ frames. Here, as in Python 3.14, it sleeps until the process ends.
#pragma once

#include <Python.h>
#include <unistd.h>

namespace rkv_python {

class Unlocked {
 public:
  Unlocked() : saved_(PyEval_SaveThread()) {}
  ~Unlocked() { end(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  void end() {
    if (saved_ == nullptr) return;
    PyThreadState* const saved = saved_;
    saved_ = nullptr;
    try {
      PyEval_RestoreThread(saved);
    } catch (...) {  // pthread_exit on its way
      for (;;) pause();
    }
  }

 private:
  PyThreadState* saved_;
};

}  // namespace rkv_python

// What SWIG puts around each call (-threads).
#define SWIG_PYTHON_NO_USE_GIL
#define SWIG_PYTHON_THREAD_BEGIN_ALLOW rkv_python::Unlocked unlocked
#define SWIG_PYTHON_THREAD_END_ALLOW unlocked.end()

"""The extension module that SWIG makes; private to the facade."""

/* The C API as every language of SWIG sees it: constants, the structs that are filled field by
 * field, and the functions that need no cache. A language adds its typemaps for rkv_error (how a
 * status becomes its exception) before including this file, and its own classes for the calls
 * that take arrays after it. */

%{
#include <stdio.h>

#include "rkv/rkv.h"
%}

%include <stdint.i>

/* Made zero with struct_size set; that and the reserved fields are nobody's business. */
%define RKV_STRUCT(NAME)
%ignore NAME::struct_size;
%ignore NAME::reserved;
%extend NAME {
  NAME() {
    NAME *made = new NAME();
    made->struct_size = sizeof(NAME);
    return made;
  }
}
%enddef

RKV_STRUCT(rkv_cache_config)
RKV_STRUCT(rkv_sequence_options)
RKV_STRUCT(rkv_plan)
RKV_STRUCT(rkv_memory)
RKV_STRUCT(rkv_sequence_stats)
RKV_STRUCT(rkv_audit_result)
%ignore rkv_sequence_stats::plan;

%ignore rkv_cache_config::dense_layers;
%extend rkv_cache_config {
  rkv_status set_dense_layer(int32_t layer, rkv_error *err) {
    if (layer < 0 || layer >= 256) {
      snprintf(err->text, sizeof err->text, "dense_layers: %d, need 0 to 255", (int)layer);
      return err->status = RKV_INVALID_ARGUMENT;
    }
    $self->dense_layers[layer / 32] |= UINT32_C(1) << (layer % 32);
    return RKV_OK;
  }
}

/* These hold pointers into the caller's arrays, or a cache whose life a class must guard. */
%ignore rkv_error;
%ignore rkv_tensor;
%ignore rkv_buffers;
%ignore rkv_paging;
%ignore rkv_prefill_args;
%ignore rkv_selection;
%ignore rkv_decode_args;
%ignore rkv_transfer_args;
%rename($ignore, regextarget=1, %$isfunction) "^rkv_(cache_(create|destroy)|sequence_.*|prefill|decode.*|attend|stats|kept_positions|audit)$";

%include "rkv/rkv.h"

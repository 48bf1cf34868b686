// Fields of the public structs by their C names, as text lines name them.
#pragma once

#include <string>

#include "rkv/rkv.h"

namespace rkv_golden {

// "FIELD=VALUE FIELD=VALUE ...": sets them. An unknown name throws std::invalid_argument.
void set_fields(rkv_cache_config& config, const std::string& text);
void set_fields(rkv_sequence_options& options, const std::string& text);

// "FIELD=VALUE" as the config has it now.
std::string field_text(const rkv_cache_config& config, const std::string& name);

// The shortest decimal that reads back as x to `digits` significant digits.
std::string real_text(double x, int digits = 17);

}  // namespace rkv_golden

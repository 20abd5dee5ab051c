// `rtmmu` under the name, parameters and ports of the data MMU of the OpenRISC core mor1kx: listed instead of the
// core's own file, it is built into an unchanged core.
//
// OPTION_DMMU_SET_WIDTH is the logarithm of the pages, OPTION_DMMU_WAYS the number of cached translations.
// RTMMU_TABLES (a macro: 0, 1, 2) chooses where the tables are, 1 if it is not set.
// The registers are SPRs of group 1.
//
// Invariant: the load store unit sees no translation before it is complete, and each refusal as a page fault at the
// instruction that made the access.

`ifndef RTMMU_TABLES
`define RTMMU_TABLES 1
`endif

module mor1kx_dmmu #(
    // Hardware reload is what this unit does; the parameter is the core's.
    // verilator lint_off UNUSEDPARAM
    parameter FEATURE_DMMU_HW_TLB_RELOAD = "ENABLED",
    parameter OPTION_OPERAND_WIDTH = 32,
    // verilator lint_on UNUSEDPARAM
    parameter OPTION_DMMU_SET_WIDTH = 12,
    parameter OPTION_DMMU_WAYS = 1
) (
    input logic clk,
    input logic rst,

    input  logic        enable_i,
    // The address a clock early, of which a unit with a synchronous TLB makes use.
    // verilator lint_off UNUSEDSIGNAL
    input  logic [31:0] virt_addr_i,
    // verilator lint_on UNUSEDSIGNAL
    input  logic [31:0] virt_addr_match_i,
    output logic [31:0] phys_addr_o,
    output logic        cache_inhibit_o,

    input logic op_store_i,
    input logic op_load_i,
    input logic supervisor_mode_i,

    output logic tlb_miss_o,
    output logic pagefault_o,

    output logic        tlb_reload_req_o,
    output logic        tlb_reload_busy_o,
    input  logic        tlb_reload_ack_i,
    output logic [31:0] tlb_reload_addr_o,
    input  logic [31:0] tlb_reload_data_i,
    output logic        tlb_reload_pagefault_o,
    input  logic        tlb_reload_pagefault_clear_i,

    input  logic [15:0] spr_bus_addr_i,
    input  logic        spr_bus_we_i,
    input  logic        spr_bus_stb_i,
    input  logic [31:0] spr_bus_dat_i,
    output logic [31:0] spr_bus_dat_o,
    output logic        spr_bus_ack_o
);
  logic selected, acknowledged;
  assign selected = spr_bus_stb_i && spr_bus_addr_i[15:11] == 5'd1;
  assign spr_bus_ack_o = acknowledged && selected;
  assign pagefault_o = tlb_reload_pagefault_o;

  // Only the lowest address bits are decoded: the group has no other registers.
  // verilator lint_off UNUSEDSIGNAL
  logic [6:0] undecoded;
  // verilator lint_on UNUSEDSIGNAL
  assign undecoded = spr_bus_addr_i[10:4];

  rtmmu #(
      .PagesLog2(OPTION_DMMU_SET_WIDTH),
      .Tables(`RTMMU_TABLES),
      .Entries(OPTION_DMMU_WAYS)
  ) unit (
      .clk,
      .rst,
      .enable_i,
      .load_i(op_load_i),
      .store_i(op_store_i),
      .supervisor_i(supervisor_mode_i),
      .address_i(virt_addr_match_i),
      .address_o(phys_addr_o),
      .inhibit_o(cache_inhibit_o),
      .miss_o(tlb_miss_o),
      .busy_o(tlb_reload_busy_o),
      .fault_o(tlb_reload_pagefault_o),
      .fault_clear_i(tlb_reload_pagefault_clear_i),
      .table_request_o(tlb_reload_req_o),
      .table_address_o(tlb_reload_addr_o),
      .table_ack_i(tlb_reload_ack_i),
      .table_data_i(tlb_reload_data_i),
      .register_select_i(selected),
      .register_write_i(spr_bus_we_i),
      .register_i(spr_bus_addr_i[3:0]),
      .register_data_i(spr_bus_dat_i),
      .register_data_o(spr_bus_dat_o),
      .register_ack_o(acknowledged)
  );
endmodule

// The core with both Wishbone ports led out, for a simulator that is memory and devices.
//
// Invariant: nothing here but wires and parameters; the core is the registry's, unchanged.

module soc_top #(
    parameter integer PagesLog2 = 10,
    parameter integer Entries = 1,
    parameter InstructionCache = "NONE",
    parameter DataCache = "NONE"
) (
    input  logic        clk,
    input  logic        rst,
    output logic [31:0] instruction_address,
    output logic        instruction_strobe,
    input  logic        instruction_ack,
    input  logic [31:0] instruction_data,
    output logic [31:0] data_address,
    output logic        data_strobe,
    output logic [ 3:0] data_select,
    output logic        data_write,
    output logic [31:0] data_out,
    input  logic        data_ack,
    input  logic        data_error,
    input  logic [31:0] data_in
);
  logic instruction_cycle, data_cycle, instruction_request, data_request;
  assign instruction_strobe = instruction_cycle && instruction_request;
  assign data_strobe = data_cycle && data_request;

  mor1kx #(
      .FEATURE_DMMU("ENABLED"),
      .OPTION_DMMU_SET_WIDTH(PagesLog2),
      .OPTION_DMMU_WAYS(Entries),
      .FEATURE_INSTRUCTIONCACHE(InstructionCache),
      .FEATURE_DATACACHE(DataCache),
      // The upper half of the addresses is devices.
      .OPTION_DCACHE_LIMIT_WIDTH(31),
      .OPTION_CPU0("CAPPUCCINO"),
      .OPTION_RESET_PC(32'h0000_0100),
      .IBUS_WB_TYPE("CLASSIC"),
      .DBUS_WB_TYPE("CLASSIC")
  ) core (
      .clk,
      .rst,
      .iwbm_adr_o(instruction_address),
      .iwbm_stb_o(instruction_request),
      .iwbm_cyc_o(instruction_cycle),
      .iwbm_sel_o(),
      .iwbm_we_o(),
      .iwbm_cti_o(),
      .iwbm_bte_o(),
      .iwbm_dat_o(),
      .iwbm_err_i(1'b0),
      .iwbm_ack_i(instruction_ack),
      .iwbm_dat_i(instruction_data),
      .iwbm_rty_i(1'b0),
      .dwbm_adr_o(data_address),
      .dwbm_stb_o(data_request),
      .dwbm_cyc_o(data_cycle),
      .dwbm_sel_o(data_select),
      .dwbm_we_o(data_write),
      .dwbm_cti_o(),
      .dwbm_bte_o(),
      .dwbm_dat_o(data_out),
      .dwbm_err_i(data_error),
      .dwbm_ack_i(data_ack),
      .dwbm_dat_i(data_in),
      .dwbm_rty_i(1'b0),
      .irq_i(32'd0),
      .du_addr_i(16'd0),
      .du_stb_i(1'b0),
      .du_dat_i(32'd0),
      .du_we_i(1'b0),
      .du_dat_o(),
      .du_ack_o(),
      .du_stall_i(1'b0),
      .du_stall_o(),
      .traceport_exec_valid_o(),
      .traceport_exec_pc_o(),
      .traceport_exec_jb_o(),
      .traceport_exec_jal_o(),
      .traceport_exec_jr_o(),
      .traceport_exec_jbtarget_o(),
      .traceport_exec_insn_o(),
      .traceport_exec_wbdata_o(),
      .traceport_exec_wbreg_o(),
      .traceport_exec_wben_o(),
      .multicore_coreid_i(32'd0),
      .multicore_numcores_i(32'd1),
      .snoop_adr_i(32'd0),
      .snoop_en_i(1'b0)
  );
endmodule
